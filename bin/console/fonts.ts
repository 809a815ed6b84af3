import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundle.ts'

/** A file of a font, and the CSS that names it. */
interface FontFile {
  /** Relative to the root. */
  source: string
  bytes: Buffer
  /** The rule with the place for the address of the file. */
  rule: (url: string) => string
  /** The first screen needs it. */
  isFirst: boolean
}

/** The families of the console by the name that styles.css uses, with the scripts that are carried of each. */
const families = [
  { family: 'Geist', name: 'geist', scripts: ['latin', 'latin-ext', 'cyrillic'] },
  { family: 'Geist Mono', name: 'geist-mono', scripts: ['latin', 'latin-ext'] },
] as const

/** Returns the files of the fonts: variable in weight, one for each range of characters, which browsers load when they need it. */
export const fontFiles = (): FontFile[] =>
  families.flatMap(({ family, name, scripts }) => {
    const folder = `node_modules/@fontsource-variable/${name}`
    const ranges = JSON.parse(readFileSync(join(root, folder, 'unicode.json'), 'utf8')) as Record<string, string>
    return scripts.map(script => {
      const source = `${folder}/files/${name}-${script}-wght-normal.woff2`
      return {
        source,
        bytes: readFileSync(join(root, source)),
        rule: (url: string) =>
          `@font-face{font-family:${JSON.stringify(family)};font-weight:100 900;font-display:swap;` +
          `src:url(${url}) format("woff2");unicode-range:${ranges[script]!}}`,
        isFirst: family === 'Geist' && script === 'latin',
      }
    })
  })
