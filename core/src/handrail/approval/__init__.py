"""What a person is asked, and what their answer means."""
