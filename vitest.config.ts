import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { bundledEntries } from './test/_fixtures.ts'
import { pureTests, sharedTests } from './test/_pure.ts'

const pure = pureTests()
const shared = sharedTests()
const built = { globalSetup: 'test/_build.ts' }
/** The program under test starts its processes and threads from bundles, in a third of the processor time. */
const define = { __INFER_ENTRIES__: JSON.stringify(bundledEntries) }

// Every process and thread that a test starts reads what Node made of its source files the last time. Without it each
// strips the types and compiles: 0.2 seconds of processor time for a store, 0.1 for a command.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'build/compile-cache')

/** Without figures of a last run Vitest begins with large files; the pages of the guides run for minutes from a small one. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification) => moduleId.endsWith('/test/e2e/guides.test.ts')
    return (await super.sort(files)).toSorted((a, b) => Number(isLongest(b)) - Number(isLongest(a)))
  }
}

export default defineConfig({
  test: {
    // Real processes, sockets and fsyncs: three files at a time leave a part of two processors idle.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // Node strips types with WebAssembly in each thread. V8 aborts the process now and then ("Check failed:
    // jit_page.has_value()") when it frees wrappers that it has compiled anew while other threads end: it compiles none.
    execArgv: ['--wasm-wrapper-tiering-budget=1000000000'],
    // Only what hangs takes so long, also on a machine that is four times slower than usual.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // A poll ends when what it waits for is there; a second is not enough on a loaded machine.
    expect: { poll: { timeout: 40_000 } },
    projects: [
      // Files of the first two share what they have imported: the whole program takes 1.4 seconds of processor time.
      { extends: true, test: { name: 'pure', include: pure, isolate: false } },
      { extends: true, test: { name: 'shared', include: shared, isolate: false, ...built }, define },
      {
        extends: true,
        test: { name: 'whole', include: ['test/**/*.test.ts'], exclude: [...pure, ...shared], ...built },
        define,
      },
    ],
  },
})
