import { hash } from 'node:crypto'
import type { LicensedWork } from './works.ts'

interface SbomOptions {
  version: string
  /** Of the executable, hexadecimal. */
  sha256: string
  /** By folder of a package in the lock file: `sha512-` and the hash of its tarball in Base64. */
  integrities: Readonly<Record<string, string | undefined>>
  works: readonly Omit<LicensedWork, 'text'>[]
  /** When the list was made. */
  at: Date
}

/** The bill of materials of an executable: CycloneDX 1.6, as JSON. The same options give the same bytes. */
export function sbom({ version, sha256, integrities, works, at }: SbomOptions): string {
  const own = { 'bom-ref': 'infer', type: 'application', name: 'infer', version }
  const components = works.map(work => componentOf(work, integrities))
  return `${JSON.stringify(
    {
      $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      serialNumber: `urn:uuid:${uuidOf(sha256)}`,
      version: 1,
      metadata: {
        timestamp: at.toISOString(),
        component: { ...own, hashes: [{ alg: 'SHA-256', content: sha256 }], licenses: licensesOf('MIT') },
      },
      components,
      dependencies: [{ ref: 'infer', dependsOn: components.map(component => component['bom-ref']) }],
    },
    null,
    2,
  )}\n`
}

function componentOf(
  { name, version, license, author, purl, cpe, lockPath, parts }: Omit<LicensedWork, 'text'>,
  integrities: SbomOptions['integrities'],
) {
  const integrity = lockPath === null ? undefined : integrities[lockPath]
  return {
    'bom-ref': `${name}@${version}`,
    type: name === 'Node.js' ? 'platform' : 'library',
    name,
    // Of what is compiled into another work only that work's version is known.
    ...(version.startsWith('in ') ? { description: `${name} ${version}` } : { version }),
    authors: [{ name: author }],
    licenses: licensesOf(license),
    ...(integrity?.startsWith('sha512-') && { hashes: [{ alg: 'SHA-512', content: hexOf(integrity.slice(7)) }] }),
    ...(cpe && { cpe }),
    ...(purl && { purl }),
    ...(parts && {
      components: Object.entries(parts).map(([part, of]) => ({
        'bom-ref': `${name}@${version}/${part}@${of}`,
        type: 'library',
        name: part,
        version: of,
      })),
    }),
  }
}

/** An SPDX id, an SPDX expression, or words. */
const licensesOf = (license: string) =>
  /^[\w.+-]+$/.test(license)
    ? [{ license: { id: license } }]
    : /^\(?[\w.+-]+( (AND|OR|WITH) [\w.+()-]+)+\)?$/.test(license)
      ? [{ expression: license }]
      : [{ license: { name: license } }]

const hexOf = (base64: string): string => Buffer.from(base64, 'base64').toString('hex')

/** A name-based UUID (version 8, of RFC 9562): one executable has one serial number. */
function uuidOf(text: string): string {
  const hex = hash('sha256', `infer sbom ${text}`).slice(0, 32)
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, variant + hex.slice(17, 20), hex.slice(20)].join(
    '-',
  )
}
