import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { bash, fish, zsh } from '../cli/completion/shells.ts'
import { packagedProgram, packagedUnitPath, systemDataDir, unitOf } from '../cli/service/unit.ts'
import { filesBelow, root } from './bundle.ts'
import type { Architecture } from './target.ts'

interface DebOptions {
  architecture: Architecture
  version: string
  executable: string
  /** The package that is written; an older one is replaced. */
  output: string
  /** 1 to 9 of xz; 0 for none. */
  compression: number
}

export const dpkgMissing = 'dpkg-deb is missing, which writes Debian packages. Install it with: apt-get install dpkg'

const debianNames: Record<Architecture, string> = { x64: 'amd64', arm64: 'arm64' }

/** The file name that Debian expects of a package. */
export const debName = (version: string, architecture: Architecture): string =>
  `infer_${debianVersion(version)}_${debianNames[architecture]}.deb`

/** Debian sorts `1.0~rc.1` before `1.0`, and `1.0-rc.1` after it. */
const debianVersion = (version: string): string => version.replace('-', '~')

/** Packs an executable with its service into a Debian package. Throws when dpkg-deb is missing. */
export function writeDeb({ architecture, version, executable, output, compression }: DebOptions): void {
  const folder = mkdtempSync(join(tmpdir(), 'infer-deb-'))
  try {
    chmodSync(folder, 0o755)
    const put = (path: string, content: string | Uint8Array): void => {
      mkdirSync(join(folder, dirname(path)), { recursive: true, mode: 0o755 })
      writeFileSync(join(folder, path), content, { mode: 0o644 })
    }
    mkdirSync(join(folder, 'usr/bin'), { recursive: true, mode: 0o755 })
    copyFileSync(executable, join(folder, 'usr/bin/infer'))
    chmodSync(join(folder, 'usr/bin/infer'), 0o755)
    put(packagedUnitPath, packagedUnit())
    put('usr/share/bash-completion/completions/infer', bash)
    put('usr/share/zsh/vendor-completions/_infer', zsh)
    put('usr/share/fish/vendor_completions.d/infer.fish', fish)
    put('usr/share/doc/infer/copyright', copyright())
    put('usr/share/doc/infer/CHANGELOG.md.gz', gzipSync(readFileSync(join(root, 'CHANGELOG.md')), { level: 9 }))

    const files = filesBelow(folder).sort()
    const bytes = files.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0)
    put('DEBIAN/md5sums', files.map(path => `${hash('md5', readFileSync(join(folder, path)))}  ${path}\n`).join(''))
    put('DEBIAN/control', control(version, architecture, Math.ceil(bytes / 1024)))
    for (const script of ['postinst', 'prerm', 'postrm']) {
      put(`DEBIAN/${script}`, readFileSync(join(root, 'bin/debian', script)))
      chmodSync(join(folder, 'DEBIAN', script), 0o755)
    }
    const how = compression === 0 ? ['-Znone'] : ['-Zxz', `-z${compression}`]
    execFileSync('dpkg-deb', ['--root-owner-group', ...how, '--build', folder, output], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException
    if (code !== 'ENOENT' || !syscall?.startsWith('spawn')) throw cause
    throw new Error(dpkgMissing, { cause })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What `infer service install --run-as infer` writes, with a stop of 60 s for running requests and 30 s more. */
const packagedUnit = (): string =>
  unitOf({
    scope: 'system',
    command: [packagedProgram, 'serve'],
    dataDir: systemDataDir,
    user: 'infer',
    stopSeconds: 90,
  })

const copyright = (): string =>
  `${readFileSync(join(root, 'LICENSE'), 'utf8')}
The executable contains works of others. This command prints them with their licences: infer licenses
`

/** libllama needs libstdc++ of GCC 12, better-sqlite3 needs glibc 2.34. */
const control = (version: string, architecture: Architecture, kibibytes: number): string =>
  `Package: infer
Version: ${debianVersion(version)}
Architecture: ${debianNames[architecture]}
Maintainer: The infer authors <infer@localhost>
Installed-Size: ${kibibytes}
Depends: libc6 (>= 2.34), libstdc++6 (>= 12), passwd
Recommends: bubblewrap
Suggests: ffmpeg
Section: net
Priority: optional
Description: inference platform for machines with GPUs
 One executable with an OpenAI-compatible API, durable jobs, workflows,
 organizations with scoped tokens and limits, and a supervisor that starts,
 swaps and stops the model processes on the devices of the machine.
 .
 The package has a service of systemd, which is started by hand:
 systemctl enable --now infer
`
