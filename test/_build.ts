import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import type { TestProject } from 'vitest/node'
import { beginStep, upToDate } from '../bin/stamp.ts'
import { builtProgram, bundledFixtures, root } from './_fixtures.ts'

/** Builds what tests start as processes and threads, if something that it is made of has changed. */
export async function setup(project: TestProject): Promise<void> {
  await prepare()
  project.onTestsRerun(prepare)
}

async function prepare(): Promise<void> {
  if (!upToDate('dist'))
    execFileSync(process.execPath, [join(root, 'bin/build.ts')], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (!upToDate('fixtures')) await bundleFixtures()
}

/** The functions for threads and the programs of `fixtures/`, in one file each. They find the packages with native code, threads and assets in dist/. */
async function bundleFixtures(): Promise<void> {
  const end = beginStep('fixtures')
  const place = JSON.stringify(pathToFileURL(builtProgram).href)
  await build({
    absWorkingDir: root,
    // In dist/ the functions for cpu threads and piscina's worker are one file, which piscina from its package cannot load.
    entryPoints: ['cli/cpu-worker.ts', ...bundledFixtures.map(name => `test/fixtures/${name}.ts`)],
    outbase: '.',
    entryNames: '[name]',
    // Its symbols must be those of the worker.
    external: ['piscina'],
    outdir: 'build/fixtures',
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node24',
    supported: { using: true },
    define: {
      __INFER_VERSION__: '"test"',
      __INFER_BUILD__: '"test"',
      __INFER_LLAMA__: '"test"',
      'import.meta.url': '__place',
    },
    banner: {
      js: `import { createRequire as __createRequire } from 'node:module'; const __place = ${place}; const require = __createRequire(__place);`,
    },
    logLevel: 'warning',
  })
  end()
}
