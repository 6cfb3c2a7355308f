"""Operations of the network APIs: each opens its own transactions and returns values of the model."""
