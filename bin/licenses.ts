import type { LicensedWork } from './works.ts'

/** The text of `infer licenses`: the third-party works inside the executable, then each licence with its text. */
export function licenses(works: readonly LicensedWork[]): string {
  return [
    'infer is made with the works of others, which their makers have licensed as follows.\n',
    works.map(({ name, version, license }) => `${name} ${version}: ${license}`).join('\n'),
    ...works.map(heading),
    '',
  ].join('\n')
}

const heading = ({ name, version, license, author, text }: LicensedWork): string =>
  `\n${'-'.repeat(80)}\n${name} ${version} (${license})\n\n${text ?? `Its package holds no text of this licence. By ${author}.`}`
