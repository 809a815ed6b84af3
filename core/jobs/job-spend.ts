import type { Spend } from '../admission/spend.ts'

/** What jobs do with the money of their organizations. */
export type JobSpend = Pick<Spend, 'hold' | 'release' | 'settle'>

/** Where nothing has a price. */
export const noSpend: JobSpend = { hold() {}, release() {}, settle() {} }
