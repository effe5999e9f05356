//! Walking the tree with typed accessors that collect problems.
