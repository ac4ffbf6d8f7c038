package org.opensearch.transport.grpc.spi;

/** What the k-NN plugin implements for the gRPC transport, which Maven does not have. Only its name is needed. */
public interface QueryBuilderProtoConverter {}

interface QueryBuilderProtoConverterRegistry {}
