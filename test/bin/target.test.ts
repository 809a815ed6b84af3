import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { architectures, buildTarget, nativePackages, nodeVersion, targets } from '../../bin/target.ts'

interface Locked {
  version?: string
  integrity?: string
}
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Locked> }

test.each(architectures)(
  'for %s the lock file has every package with native code, in the same version as the others',
  one => {
    const other = nativePackages('x64')
    for (const [at, name] of nativePackages(one).entries()) {
      expect(packages[`node_modules/${name}`], name).toMatchObject({
        version: packages[`node_modules/${other[at]!}`]!.version,
        integrity: expect.stringMatching(/^sha512-/) as string,
      })
    }
    expect(packages[`node_modules/node-linux-${one}`]!.version).toBe(nodeVersion)
    expect(existsSync(join(targets[one].packageFolder('better-sqlite3'), `prebuilds/linux-${one}.node`))).toBe(true)
  },
)

test('x64 is the default target; an unknown architecture is refused with the known ones', () => {
  expect(buildTarget(undefined)).toBe(targets.x64)
  expect(buildTarget('arm64')).toBe(targets.arm64)
  expect(() => buildTarget('riscv64')).toThrow("'riscv64' is not an architecture of infer. Write one of: x64, arm64")
})
