"""Operations of the network APIs: each opens its transactions, and answers with values of the model."""
