package hello;

import java.util.Map;

/** What both ends exchange as JSON. */
public class Email {
    private String to;
    private String body;
    private Map<String, String> extraNotes = Map.of();

    public Email() {}

    public Email(String to, String body) {
        this.to = to;
        this.body = body;
    }

    public String getTo() {
        return to;
    }

    public void setTo(String to) {
        this.to = to;
    }

    public Map<String, String> getExtraNotes() {
        return extraNotes;
    }

    public void setExtraNotes(Map<String, String> extraNotes) {
        this.extraNotes = extraNotes;
    }

    public String getBody() {
        return body;
    }

    public void setBody(String body) {
        this.body = body;
    }
}
