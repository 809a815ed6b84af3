import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { version } from '../core/assets.ts'
import { filesBelow, root } from './bundle.ts'
import { writeLlamaSources } from './llama-sources.ts'

/**
 * Writes build/gpu-checks: the packed executable, compressed, the checks of test/gpu/checks and the sources that they
 * compile, for a machine with a card that has neither a network nor Node. Prints one line. Throws when the folder has
 * more than 56 MiB. The first argument replaces the folder.
 */
const maxBytes = 56 * 2 ** 20
const executable = join(root, 'build', 'infer')
const folder = process.argv[2] ?? join(root, 'build', 'gpu-checks')

if (!existsSync(executable)) throw new Error('build/infer is missing. Run: npm run pack')
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const source = join(root, 'test', 'gpu', 'checks')
// The fake card is for tests; caches of Python belong to one machine.
cpSync(source, join(folder, 'checks'), {
  recursive: true,
  filter: path => !/\/(fake|__pycache__)(\/|$)/.test(path.slice(source.length)),
})
// Level 1 gives 48 MiB in 16 s of processor time; level 3 saves 1 MiB and takes three times as long.
const compressed = execFileSync('xz', ['-1', '-T2', '-c', executable], { maxBuffer: 2 ** 28 })
writeFileSync(join(folder, 'infer.xz'), compressed)
writeLlamaSources(join(folder, 'llama.cpp.tar.xz'))
writeFileSync(join(folder, 'run'), '#!/bin/sh\nexec python3 "$(dirname "$0")/checks/run.py" "$@"\n')
chmodSync(join(folder, 'run'), 0o755)

const files = filesBelow(folder).sort()
const manifest = {
  version,
  commit: execFileSync('git', ['describe', '--always', '--dirty'], { cwd: root, encoding: 'utf8' }).trim(),
  files: Object.fromEntries(
    files.map(path => {
      const content = readFileSync(join(folder, path))
      return [path, { bytes: content.length, sha256: hash('sha256', content) }]
    }),
  ),
}
writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)

const bytes = filesBelow(folder).reduce((sum, path) => sum + statSync(join(folder, path)).size, 0)
const mebibytes = (count: number) => (count / 2 ** 20).toFixed(1)
if (bytes > maxBytes)
  throw new Error(`${folder} has ${mebibytes(bytes)} MiB, and may have ${mebibytes(maxBytes)} at most.`)
process.stdout.write(
  `${relative(root, folder)}: ${mebibytes(bytes)} of ${mebibytes(maxBytes)} MiB, commit ${manifest.commit}\n`,
)
