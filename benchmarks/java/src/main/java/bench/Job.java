package bench;

/** What to measure; {@code warmup} messages go first and are not timed, so that the JIT has seen the code. */
record Job(String scenario, String url, String queue, int count, int size, int warmup) {
    static Job parse(String[] args) {
        if (args.length != 6) {
            throw new IllegalArgumentException("usage: Bench SCENARIO URL QUEUE COUNT SIZE WARMUP");
        }
        return new Job(args[0], args[1], args[2], number(args[3]), number(args[4]), number(args[5]));
    }

    private static int number(String text) {
        return Integer.parseInt(text);
    }

    String text() {
        return "x".repeat(size);
    }
}
