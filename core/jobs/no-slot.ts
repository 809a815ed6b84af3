import type { Lease } from '../models/fleet.ts'

function noEngine(): never {
  throw new Error('This work has said that it needs no engine.')
}

/** Stands for the slot of a call or a job whose answer needs no engine, such as the text of silence. */
export const noSlot = (modelId: string): Lease => ({
  engineId: '',
  modelId,
  sharesFolders: true,
  waitedMs: 0,
  loadedMs: 0,
  othersAtEnd: undefined,
  open: noEngine,
  connect: noEngine,
  followProgress() {},
  abandoned() {},
  used: () => ({ gpuMs: 0, energyMj: null }),
  release() {},
  [Symbol.dispose]() {},
})
