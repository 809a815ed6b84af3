import { Failure } from '../failure.ts'

/**
 * Why a store cannot be opened. `exitCode` is the exit code of the program: 64 if the data directory is in use or not
 * safe to use, 65 if the data is damaged or newer than this program, 74 if the disk does not work.
 */
export class StoreRefusal extends Failure {
  readonly exitCode: 64 | 65 | 74

  constructor(exitCode: 64 | 65 | 74, message: string, cause?: unknown) {
    super(exitCode === 74 ? 'disk_full' : 'conflict', message, { cause })
    this.exitCode = exitCode
  }
}
