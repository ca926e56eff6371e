"""`web_search`: what search engines find, by one interface."""
