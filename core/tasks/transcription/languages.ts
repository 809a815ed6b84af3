/** The languages of Whisper by code, with the names that OpenAI's API uses. */
const named: Readonly<Record<string, string>> = Object.fromEntries(
  `af afrikaans,am amharic,ar arabic,as assamese,az azerbaijani,ba bashkir,be belarusian,bg bulgarian,bn bengali,
bo tibetan,br breton,bs bosnian,ca catalan,cs czech,cy welsh,da danish,de german,el greek,en english,es spanish,
et estonian,eu basque,fa persian,fi finnish,fo faroese,fr french,gl galician,gu gujarati,ha hausa,haw hawaiian,
he hebrew,hi hindi,hr croatian,ht haitian creole,hu hungarian,hy armenian,id indonesian,is icelandic,it italian,
ja japanese,jw javanese,ka georgian,kk kazakh,km khmer,kn kannada,ko korean,la latin,lb luxembourgish,ln lingala,
lo lao,lt lithuanian,lv latvian,mg malagasy,mi maori,mk macedonian,ml malayalam,mn mongolian,mr marathi,ms malay,
mt maltese,my myanmar,ne nepali,nl dutch,nn nynorsk,no norwegian,oc occitan,pa punjabi,pl polish,ps pashto,
pt portuguese,ro romanian,ru russian,sa sanskrit,sd sindhi,si sinhala,sk slovak,sl slovenian,sn shona,so somali,
sq albanian,sr serbian,su sundanese,sv swedish,sw swahili,ta tamil,te telugu,tg tajik,th thai,tk turkmen,tl tagalog,
tr turkish,tt tatar,uk ukrainian,ur urdu,uz uzbek,vi vietnamese,yi yiddish,yo yoruba,yue cantonese,zh chinese`
    .split(',')
    .map(entry => {
      const [code = '', ...name] = entry.trim().split(' ')
      return [code, name.join(' ')]
    }),
)

/** Other codes of the same languages. */
const others: Readonly<Record<string, string>> = { jv: 'jw', iw: 'he', nb: 'no', fil: 'tl', cmn: 'zh' }

/** Returns the code of a language from its code (`en`, `en-GB`) or its English name; undefined for unknown ones. */
export function languageCode(text: string): string | undefined {
  const plain = text.trim().toLowerCase()
  const code = plain.split(/[-_]/, 1)[0]!
  const known = others[code] ?? code
  if (Object.hasOwn(named, known)) return known
  return Object.keys(named).find(one => named[one] === plain)
}

/**
 * Returns the code of the language that a request names: null if the engine shall detect it, which clients ask for by
 * no value, an empty one or `auto`; undefined for an unknown language.
 */
export const requestedLanguage = (text: string | null | undefined): string | null | undefined =>
  ['', 'auto'].includes(text?.trim().toLowerCase() ?? '') ? null : languageCode(text!)

/** Returns the English name in lower case, as in `verbose_json`; undefined for an unknown language. */
export const languageName = (text: string): string | undefined => {
  const code = languageCode(text)
  return code === undefined ? undefined : named[code]
}
