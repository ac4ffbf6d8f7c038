package org.opensearch.protobufs;

/** A message of the gRPC transport in signatures of the k-NN plugin. Only its name is needed. */
public final class QueryContainer {
  public enum QueryContainerCase {}
}
