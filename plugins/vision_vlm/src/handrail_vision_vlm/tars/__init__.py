"""ByteDance's UI-TARS: a model that points at things, and plans what to do with mouse and keyboard."""
