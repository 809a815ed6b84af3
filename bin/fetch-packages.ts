import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './bundle.ts'

interface Locked {
  version?: string
  /** `sha512-` and the hash of the tarball in Base64. */
  integrity?: string
}

/**
 * Puts packages of the lock file into a node_modules folder, although `npm ci` leaves them out here because they are for
 * another architecture. One that is there in the same version is not fetched again. Throws when a tarball is not the
 * one in the lock file.
 */
export function fetchPackages(
  names: readonly string[],
  folder: string,
  lockFile = join(root, 'package-lock.json'),
): void {
  const { packages } = JSON.parse(readFileSync(lockFile, 'utf8')) as {
    packages: Record<string, Locked | undefined>
  }
  for (const name of names) {
    const { version, integrity } = packages[`node_modules/${name}`] ?? {}
    if (!version || !integrity) throw new Error(`${lockFile} has no ${name} with an integrity. Run: npm install`)
    const target = join(folder, name)
    const receipt = join(folder, `.${name.replace('/', '-')}.integrity`)
    if (existsSync(target) && existsSync(receipt) && readFileSync(receipt, 'utf8') === integrity) continue
    fetchPackage(`${name}@${version}`, integrity, target)
    writeFileSync(receipt, integrity)
  }
}

function fetchPackage(what: string, integrity: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true })
  const work = mkdtempSync(`${target}.`)
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', work, what], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const tarball = join(work, readdirSync(work)[0]!)
    const found = `sha512-${hash('sha512', readFileSync(tarball), 'base64')}`
    if (found !== integrity) throw new Error(`${what} is ${found}, and the lock file has ${integrity}.`)
    execFileSync('tar', ['-xzf', tarball, '-C', work])
    rmSync(target, { recursive: true, force: true })
    renameSync(join(work, 'package'), target)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
