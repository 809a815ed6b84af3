import { expect, test } from 'vitest'
import { chooseVoice, parseEspeakVoices, variantsIn } from '../../../../gpu/engines/espeak/voices.ts'

const table = `Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  de              --/M      German             gmw/de
 2  en-us           --/M      English_(America)  gmw/en-US            (en 3)
 5  en-us           --/M      English_(other)    gmw/other
 5  fr-fr           --/M      French_(France)    roa/fr               (fr 5)
`
const voices = parseEspeakVoices(table)
const variants = variantsIn(`Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  variant         --/F      Annie              !v/Annie
 5  variant         70/F      female3            !v/f3
`)

test('voices and variants are read from the tables of espeak-ng', () => {
  expect(voices).toEqual([
    { id: 'de', name: 'German', language: 'de' },
    { id: 'en-us', name: 'English (America)', language: 'en-us' },
    { id: 'fr-fr', name: 'French (France)', language: 'fr-fr' },
  ])
  expect(variants).toEqual(['Annie', 'f3'])
})

test.each([
  [{}, 'en-us'],
  [{ voice: 'alloy' }, 'en-us'],
  [{ language: 'de-AT' }, 'de'],
  [{ language: 'xx' }, 'en-us'],
  [{ voice: 'fr-fr', language: 'de' }, 'fr-fr'],
  [{ voice: 'de+f3' }, 'de+f3'],
])('%o speaks with %s', (of, voice) => expect(chooseVoice(of, voices, variants)).toEqual({ voice }))

test.each(['de+x', 'de+f3+f3', '--help', '', 'dee', '../de'])('%o is refused', voice => {
  expect(chooseVoice({ voice }, voices, variants)).toEqual({
    fault: expect.stringMatching(/^'voice': espeak-ng has no voice/),
  })
})
