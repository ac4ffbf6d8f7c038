"""The search index in an AWS account: BM25 and k-NN of an OpenSearch domain."""
