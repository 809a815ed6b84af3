import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const sources = execFileSync('git', ['ls-files', 'cli', 'core', 'gpu', 'server'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter(path => path.endsWith('.ts'))

// The build reports a missing name of an `import` statement, but not of an `import()`.
test('every name that is taken from undici when it is needed is in the bundle', () => {
  const bundled = readFileSync(join(root, 'bin/only-what-is-used.ts'), 'utf8')
  const names = sources.flatMap(path =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/const \{([^}]*)\} = await import\('undici'\)/g)].flatMap(
      ([, list]) => list!.split(',').map(name => name.trim()),
    ),
  )
  expect(names).toContain('Agent')
  const isBundled = (name: string) => new RegExp(`export \\{[^}]*\\b${name}\\b[^}]*\\} from './lib/`).test(bundled)
  expect(names.filter(name => !isBundled(name))).toEqual([])
})
