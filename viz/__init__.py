"""Pictures: numpy arrays in, plotly figures or plain HTML out. Knows nothing of torch or of pages."""
