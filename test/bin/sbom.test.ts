import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sbom } from '../../bin/sbom.ts'
import type { LicensedWork } from '../../bin/works.ts'

interface Component {
  'bom-ref': string
  name: string
  version?: string
  description?: string
  purl?: string
  cpe?: string
  licenses?: unknown[]
  hashes?: { alg: string; content: string }[]
  components?: Component[]
}
interface Bom {
  serialNumber: string
  metadata: { timestamp: string; component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

const works = JSON.parse(readFileSync(join('dist', 'works.json'), 'utf8')) as LicensedWork[]
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Record<string, { integrity?: string }>
}
const integrities = Object.fromEntries(Object.entries(packages).map(([path, { integrity }]) => [path, integrity]))
const options = { version: '1.2.3', sha256: 'ab'.repeat(32), integrities, works, at: new Date(0) }
const bom = JSON.parse(sbom(options)) as Bom
const named = (name: string) => bom.components.find(component => component.name === name)

test('it names everything that infer licenses names, with a licence each', () => {
  const licences = readFileSync(join('dist', 'assets/licenses.txt'), 'utf8').split('\n'.padEnd(80, '-'))[0]!
  expect(bom.components.length).toBeGreaterThan(100)
  for (const { name, version, description, licenses } of bom.components) {
    expect(licences).toContain(`\n${description ?? `${name} ${version}`}: `)
    expect(licenses, name).toHaveLength(1)
  }
})

test('an npm package has its URL and the hash of the lock file', () => {
  const sharp = named('@img/sharp-linux-x64')!
  expect(sharp.purl).toBe(`pkg:npm/%40img/sharp-linux-x64@${sharp.version}`)
  const locked = packages['node_modules/@img/sharp-linux-x64']!.integrity!
  expect(`sha512-${Buffer.from(sharp.hashes![0]!.content, 'hex').toString('base64')}`).toBe(locked)
  const without = bom.components.filter(({ purl, hashes }) => purl?.startsWith('pkg:npm/') && !hashes)
  expect(without.map(({ name }) => name)).toEqual([])
})

test('it has what vulnerability scanners search for: Node, llama.cpp and the libraries inside libvips', () => {
  expect(named('Node.js')!.cpe).toMatch(/^cpe:2\.3:a:nodejs:node\.js:24\.\d+\.\d+:/)
  expect(named('llama.cpp')!.purl).toMatch(/^pkg:github\/ggml-org\/llama\.cpp@./)
  const inside = named('@img/sharp-libvips-linux-x64')!.components!.map(({ name }) => name)
  expect(inside).toEqual(expect.arrayContaining(['webp', 'png', 'heif', 'tiff']))
})

test('references are unique, and the executable depends on all components', () => {
  const all = bom.components.flatMap(({ 'bom-ref': ref, components = [] }) => [
    ref,
    ...components.map(part => part['bom-ref']),
  ])
  expect(new Set(all).size).toBe(all.length)
  expect(bom.dependencies).toEqual([
    { ref: bom.metadata.component['bom-ref'], dependsOn: bom.components.map(component => component['bom-ref']) },
  ])
})

test('it names the executable by its hash, and one executable has one serial number', () => {
  expect(bom.metadata.component).toMatchObject({
    name: 'infer',
    version: '1.2.3',
    hashes: [{ alg: 'SHA-256', content: options.sha256 }],
  })
  expect(bom.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(sbom(options)).toBe(sbom(options))
  expect((JSON.parse(sbom({ ...options, sha256: 'cd'.repeat(32) })) as Bom).serialNumber).not.toBe(bom.serialNumber)
})
