import { defineConfig } from 'vitest/config'
import { pureTests } from './test/_pure.ts'

const pure = pureTests()

export default defineConfig({
  test: {
    // Real processes, sockets and fsyncs: a file waits a third of its time, so three keep two processors busy.
    maxWorkers: 3,
    // Node strips types with WebAssembly in each thread. V8 aborts the process now and then ("Check failed:
    // jit_page.has_value()") when it frees wrappers that it has compiled anew while other threads end: it compiles none.
    execArgv: ['--wasm-wrapper-tiering-budget=1000000000'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A poll ends when what it waits for is there; a second is not enough on a loaded machine.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      // They share what they have imported, which halves their processor time: nothing outlives a pure test.
      { extends: true, test: { name: 'pure', include: pure, isolate: false } },
      {
        extends: true,
        test: { name: 'whole', include: ['test/**/*.test.ts'], exclude: pure, globalSetup: 'test/_build.ts' },
      },
    ],
  },
})
