/** Whether the whole suite runs (`npm run test:full`). `npm test` repeats less, and leaves out what tests other tests. */
export const full = process.env.INFER_TEST_FULL === '1'

/** How often a process is killed: `often` times in the whole suite, `INFER_TEST_KILLS` times where that is set. */
export const killsOf = (seldom: number, often: number): number =>
  Number(process.env.INFER_TEST_KILLS ?? (full ? often : seldom))
