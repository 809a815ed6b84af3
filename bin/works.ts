import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './bundle.ts'
import { type BuildTarget, nodeVersion } from './target.ts'

/** One work of others that is inside the executable. */
export interface LicensedWork {
  name: string
  version: string
  /** An SPDX expression, or words where there is none. */
  license: string
  author: string
  /** Everything its makers want to be passed on with it; null when they have put no text beside it. */
  text: string | null
  /** Where it comes from, as a package URL; null for what is part of another package. */
  purl: string | null
  /** How databases of vulnerabilities name it, where they do. */
  cpe?: string
  /** Folder of its npm package in the lock file, relative to the root; null for other works. */
  lockPath: string | null
  /** Libraries that are linked into it, by name → version. */
  parts?: Record<string, string>
}

const packages = join(root, 'node_modules')

/**
 * The works of others inside the executable of a target, by name. `inputs` are the files that went into the bundles,
 * relative to the root; `copied` are packages of which files are carried as they are.
 */
export function worksOf({
  inputs,
  copied,
  target,
}: {
  inputs: readonly string[]
  copied: readonly string[]
  target: BuildTarget
}): LicensedWork[] {
  const folders = new Set([...inputs.flatMap(folderOf), ...copied.map(target.packageFolder)])
  const works = [
    node(target),
    ...llama(),
    libvips(target),
    ...inDecoders(),
    lame(),
    ...[...folders].map(workAt),
    ...worksOfReference(),
  ]
  const distinct = new Map(works.map(work => [`${work.name} ${work.version}`, work]))
  return [...distinct.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The folder of the package that a bundled file belongs to; none for files of our own. */
function folderOf(input: string): string[] {
  const found = /^(.*\bnode_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)
  return found ? [join(root, found[1]!)] : []
}

/** Where makers leave the choice of a licence, the one that is taken. */
const chosen: Record<string, string> = { '(BSD-3-Clause OR GPL-2.0)': 'BSD-3-Clause' }

function workAt(folder: string): LicensedWork {
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
  const { name, version, license, author } = about
  const files = readdirSync(folder).filter(file => /^(licen[cs]e|copying|notice)([.-].*)?$/i.test(file))
  const texts = files.map(file => readFileSync(join(folder, file), 'utf8').trim())
  return {
    name: String(name),
    version: String(version),
    license: typeof license === 'string' ? (chosen[license] ?? license) : 'see the text',
    author: nameOf(author) ?? 'its contributors',
    text: texts.length > 0 ? texts.join('\n\n') : null,
    purl: `pkg:npm/${String(name).replace('@', '%40')}@${String(version)}`,
    lockPath: relative(root, folder).replace(/^build\/[^/]+\//, ''),
  }
}

const node = ({ architecture, packageFolder }: BuildTarget): LicensedWork => ({
  ...workAt(packageFolder(`node-linux-${architecture}`)),
  name: 'Node.js',
  license: 'MIT and others',
  cpe: `cpe:2.3:a:nodejs:node.js:${nodeVersion}:*:*:*:*:*:*:*`,
})

/** A work that is part of a package, whose version is the only one known. */
const partOf = (
  name: string,
  within: string,
  license: string,
  text: string,
  author = 'its contributors',
): LicensedWork => ({ name, version: `in ${within}`, license, author, text, purl: null, lockPath: null })

/** The text of a licence beside the code. */
const licenseText = (path: string): string => readFileSync(join(root, 'bin/licenses', path), 'utf8').trim()

const nameOf = (author: unknown): string | undefined =>
  typeof author === 'string' ? author : (author as { name?: string } | undefined)?.name

/** llama.cpp with ggml, and what is compiled into it; the packages it comes in carry the licence of their own part only. */
function llama(): LicensedWork[] {
  const info = readFileSync(join(packages, 'node-llama-cpp/llama/llama.cpp.info.json'), 'utf8')
  const version = (JSON.parse(info) as { tag?: string }).tag ?? ''
  const files = readdirSync(join(root, 'bin/licenses')).filter(name => name.endsWith('.txt'))
  return files.map(file => ({
    ...partOf(file.replace('.txt', ''), `llama.cpp ${version}`, 'see the text', licenseText(file)),
    ...(file === 'llama.cpp.txt' && { version, purl: `pkg:github/ggml-org/llama.cpp@${version}` }),
  }))
}

/** The library behind sharp, with all that is linked into it: which works those are stands in its package's README. */
function libvips({ architecture, packageFolder }: BuildTarget): LicensedWork {
  const folder = packageFolder(`@img/sharp-libvips-linux-${architecture}`)
  const [readme, versions] = ['README.md', 'versions.json'].map(name => readFileSync(join(folder, name), 'utf8').trim())
  const parts = JSON.parse(versions!) as Record<string, string>
  return { ...workAt(folder), text: [readme, versions, lesserText()].join('\n\n'), parts }
}

/** The LGPL of version 3 adds to a GPL that is to be passed on with it. */
const lesserText = () => ['LGPL-3.txt', 'GPL-3.txt'].map(name => licenseText(`libvips/${name}`)).join('\n\n')

/** The MP3 encoder inside wasm-media-encoders, a file of its own beside the program; its source is what that package names. */
function lame(): LicensedWork {
  const { version } = workAt(join(packages, 'wasm-media-encoders'))
  const text = `LAME, an MP3 encoder, https://lame.sourceforge.io, compiled to WebAssembly as audio/mp3.wasm by
https://github.com/arseneyr/wasm-media-encoders, whose repository has what it takes to make it anew.

${licenseText('lame/LGPL-2.txt')}`
  return partOf('LAME', `wasm-media-encoders ${version}`, 'LGPL-2.0-or-later', text, 'the LAME project')
}

/** What the packages of the decoders of sounds hold in one piece with their own: parsers, and libraries as WebAssembly. */
function inDecoders(): LicensedWork[] {
  const workOf = (name: string) => workAt(join(packages, name))
  const bundled = [
    'codec-parser',
    'mpg123-decoder',
    'simple-yenc',
    '@eshaz/web-worker',
    '@wasm-audio-decoders/common',
    '@wasm-audio-decoders/flac',
    '@wasm-audio-decoders/ogg-vorbis',
  ].map(workOf)
  const library = (name: string, within: string, license: string, file: string) =>
    partOf(name, `${within} ${workOf(within).version}`, license, licenseText(`decoders/${file}`))
  return [
    ...bundled.map(work => (work.name === 'codec-parser' ? { ...work, text: lesserText() } : work)),
    library('mpg123', 'mpg123-decoder', 'LGPL-2.1', 'LGPL-2.1.txt'),
    library('libFLAC and libogg', '@wasm-audio-decoders/flac', 'BSD-3-Clause', 'Xiph.txt'),
    library('libvorbis and libogg', '@wasm-audio-decoders/ogg-vorbis', 'BSD-3-Clause', 'Xiph.txt'),
  ]
}

/** What the interactive reference was bundled from by its makers, as far as it is installed beside it. */
function worksOfReference(): LicensedWork[] {
  const map = readFileSync(join(packages, '@scalar/api-reference/dist/browser/standalone.js.map'), 'utf8')
  const { sources } = JSON.parse(map) as { sources: string[] }
  const names = sources.flatMap(source => /.*\bnode_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source)?.[1] ?? [])
  return [...new Set(names)]
    .map(name => join(packages, name))
    .filter(existsSync)
    .map(workAt)
}

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
