"""Choice of the next questions: a criterion, a batch rule and an annotator rule."""
