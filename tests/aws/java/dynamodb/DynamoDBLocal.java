import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBRequestHandler;
import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBServerHandler;
import java.net.InetSocketAddress;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.ContextHandler;
import org.eclipse.jetty.server.handler.ContextHandlerCollection;

/**
 * DynamoDB Local on loopback, in memory, one database for all credentials: {@code DynamoDBLocal PORT}. Its own main class
 * listens on every interface and takes no address. Prints "ready PORT"; ends with its standard input.
 */
public class DynamoDBLocal {
  public static void main(String[] arguments) throws Exception {
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
    ContextHandler root = new ContextHandler();
    root.setHandler(
        new LocalDynamoDBServerHandler(new LocalDynamoDBRequestHandler(0, true, null, true, false), null));
    server.setHandler(new ContextHandlerCollection(root));
    server.start();
    System.out.println("ready " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
    while (System.in.read() != -1) {}
    Runtime.getRuntime().halt(0);
  }
}
