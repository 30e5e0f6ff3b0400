"""The brokers of the plugin and the images of containers/."""
