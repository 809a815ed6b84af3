import { Failure } from '../failure.ts'

/**
 * Why a store is not opened. `exitCode` is what the program ends with: 64 when the data directory is in use or not
 * safe to use, 65 when the data is damaged or newer than this program, 74 when the disk does not let us work.
 */
export class StoreRefusal extends Failure {
  readonly exitCode: 64 | 65 | 74

  constructor(exitCode: 64 | 65 | 74, message: string, cause?: unknown) {
    super(exitCode === 74 ? 'disk_full' : 'conflict', message, { cause })
    this.exitCode = exitCode
  }
}
