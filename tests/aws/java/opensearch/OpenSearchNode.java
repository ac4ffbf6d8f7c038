import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;

/**
 * A real OpenSearch node on loopback, without the bootstrap checks of its own main class (it refuses to run as root):
 * {@code OpenSearchNode HOME DATA PORT [setting=value ...]}. Prints "ready PORT"; ends with its standard input.
 */
public class OpenSearchNode {
  private static final String NAME = "mats";

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out; // the node takes it over for its log
    Path home = Path.of(arguments[0]).toAbsolutePath();
    Path data = Path.of(arguments[1]).toAbsolutePath();
    System.setProperty("opensearch.path.home", home.toString());
    System.setProperty("opensearch.path.conf", home.resolve("config").toString());
    Settings.Builder settings =
        Settings.builder()
            .put("path.home", home.toString())
            .put("path.data", Files.createDirectories(data.resolve("data")).toString())
            .put("path.logs", Files.createDirectories(data.resolve("logs")).toString())
            .put("cluster.name", NAME)
            .put("node.name", NAME)
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", arguments[2])
            .put("transport.port", "0")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .put("action.auto_create_index", false);
    for (int i = 3; i < arguments.length; i++) {
      String[] setting = arguments[i].split("=", 2);
      settings.put(setting[0], setting[1]);
    }
    Environment environment =
        InternalSettingsPreparer.prepareEnvironment(
            settings.build(), Map.of(), home.resolve("config"), () -> NAME);
    LogConfigurator.setNodeName(NAME);
    LogConfigurator.registerErrorListener();
    LogConfigurator.configure(environment);
    Node node = new Node(environment);
    node.start();
    int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
    out.println("ready " + port);
    while (System.in.read() != -1) {}
    Runtime.getRuntime().halt(0); // its data is thrown away, so nothing has to be closed
  }
}
