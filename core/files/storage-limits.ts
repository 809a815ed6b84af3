import { dayStartOf, type StorageLimits, type Store } from '../store/store.ts'

/** The limits of an organization on what it stores; 0 is unlimited. Undefined: there is no such organization. */
export type StorageLimitsOf = (
  organizationId: string,
) => Promise<Pick<StorageLimits, 'storedBytes' | 'uploadsPerDay'> | undefined>

/** Asks for the limits that apply to a new file, before its bytes arrive. */
export function openStorageLimits({
  store,
  limitsOf = async () => undefined,
}: {
  store: Pick<Store['files'], 'requireRoom'>
  limitsOf?: StorageLimitsOf | undefined
}) {
  return {
    /**
     * Returns the limits that the row of the file must keep; undefined if there are none. Throws Failure `storage_full` or
     * `rate_limit` if they forbid such a file now, so that an organization without room does not fill the disk.
     */
    async require(
      organizationId: string,
      file: { bytes: number; isUpload: boolean },
    ): Promise<StorageLimits | undefined> {
      const own = await limitsOf(organizationId)
      if (!own || (own.storedBytes === 0 && own.uploadsPerDay === 0)) return undefined
      const { storedBytes, uploadsPerDay } = own
      const limits = { storedBytes, uploadsPerDay, dayStart: dayStartOf(Date.now()) }
      await store.requireRoom(organizationId, file, limits)
      return limits
    },
  }
}
