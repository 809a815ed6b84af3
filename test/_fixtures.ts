import { join } from 'node:path'

export const root = join(import.meta.dirname, '..')

/** The built program, which starts in half the time of the source. `_build.ts` builds it. */
export const builtProgram: string = join(root, 'dist/main.cjs')

/** What the program under test starts as processes and threads, from the root (core/assets.ts). */
export const bundledEntries = {
  main: 'dist/main.cjs',
  keeper: 'dist/keeper.cjs',
  'store-writer': 'dist/store-writer.cjs',
  'cpu-worker': 'build/fixtures/cpu-worker.mjs',
}

/** Programs of `fixtures/` that tests start often. `_build.ts` bundles them: each start takes half the processor time. */
export const bundledFixtures = ['engine', 'gguf-engine', 'spanning-engine'] as const

/** Path of such a program: the bundle in tests, the source in benches, which nothing bundles for. */
export const fixtureProgram = (name: (typeof bundledFixtures)[number]): string =>
  process.env.VITEST ? join(root, 'build/fixtures', `${name}.mjs`) : join(root, 'test/fixtures', `${name}.ts`)
