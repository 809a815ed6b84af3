import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '../core/assets.ts'
import { root } from './bundle.ts'
import { debName, dpkgMissing, writeDeb } from './deb.ts'
import { packExecutable } from './executable.ts'
import { fetchPackages } from './fetch-packages.ts'
import { writeInPieces } from './install.ts'
import { emptyReleaseFolder } from './release-folder.ts'
import { sbom } from './sbom.ts'
import { architectures, arm64Packages, type BuildTarget, buildTarget, nativePackages } from './target.ts'
import type { LicensedWork } from './works.ts'

/**
 * Run by `npm run release`, after `npm run pack`. Writes build/release: for each architecture the executable, its Debian
 * package and its bill of materials, beside them the Containerfile and SHA256SUMS. Prints one line per file.
 *
 * --arch x64        only this architecture
 * --output <folder> instead of build/release
 * --compression 9   of the Debian packages: 0 is none, 9 is slow and small
 */
const { values: options } = parseArgs({
  options: {
    arch: { type: 'string' },
    output: { type: 'string', default: join(root, 'build/release') },
    compression: { type: 'string', default: '6' },
  },
})
const targets = options.arch === undefined ? architectures.map(buildTarget) : [buildTarget(options.arch)]
if (!/^[0-9]$/.test(options.compression)) throw new Error('--compression is a digit, such as --compression 6.')
const compression = Number(options.compression)
const folder = options.output
// The modes of files in a package are those on disk.
process.umask(0o022)

for (const target of targets) requirePrograms(target)
emptyReleaseFolder(folder)
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { integrity?: string }>
}
const integrities = Object.fromEntries(Object.entries(packages).map(([path, { integrity }]) => [path, integrity]))

for (const target of targets) {
  const { architecture } = target
  if (architecture === 'arm64') await packArm64(target)
  const executable = join(folder, `infer-linux-${architecture}`)
  writeInPieces(executable, readFileSync(target.executable))
  writeDeb({ architecture, version, executable, output: join(folder, debName(version, architecture)), compression })
  const works = JSON.parse(readFileSync(join(target.dist, 'works.json'), 'utf8')) as LicensedWork[]
  const sha256 = sha256Of(executable)
  writeFileSync(`${executable}.cdx.json`, sbom({ version, sha256, integrities, works, at: new Date() }))
}
copyFileSync(join(root, 'bin/Containerfile'), join(folder, 'Containerfile'))

const names = readdirSync(folder).sort()
const sums = names.map(name => `${sha256Of(join(folder, name))}  ${name}\n`)
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))
for (const name of [...names, 'SHA256SUMS']) {
  const path = join(folder, name)
  process.stdout.write(`${relative(process.cwd(), path)}: ${(statSync(path).size / 1e6).toFixed(1)} MB\n`)
}

/** Its packages are fetched here instead of by `npm ci`, because only a release needs their 70 MB. */
async function packArm64(target: BuildTarget): Promise<void> {
  fetchPackages(nativePackages('arm64'), arm64Packages)
  execFileSync(process.execPath, [join(root, 'bin/build.ts'), '--arch', 'arm64'], { stdio: 'inherit' })
  process.stdout.write(`${await packExecutable(target)}\n`)
}

/** Before minutes of work, and all at once. */
function requirePrograms({ architecture, strip, emulator }: BuildTarget): void {
  const found = (program: string) => (process.env.PATH ?? '').split(':').some(path => existsSync(join(path, program)))
  if (!found('dpkg-deb')) throw new Error(dpkgMissing)
  if (architecture === 'x64' && !existsSync(buildTarget('x64').executable))
    throw new Error('build/infer is missing. Run: npm run release')
  if (architecture === 'x64') return
  const libraries = emulator[2]!
  if (![strip, emulator[0]!].every(found) || !existsSync(join(libraries, 'lib/libstdc++.so.6')))
    throw new Error(
      'Packing for arm64 needs an emulator and libraries. Install them with: apt-get install qemu-user-static binutils-aarch64-linux-gnu libc6-arm64-cross libstdc++6-arm64-cross. Or pack for x64 only: npm run release -- --arch x64',
    )
}

function sha256Of(path: string): string {
  return hash('sha256', readFileSync(path))
}
