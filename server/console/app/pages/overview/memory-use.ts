import type { Schema } from '../../api/schema.ts'

/** Who has the memory of a device, in bytes. */
interface MemoryUse {
  /** What engines of infer use. */
  own: number
  /** Reserved for engines, and not yet in use. */
  reserved: number
  /** What other programs use. */
  foreign: number
}

/**
 * Divides the memory of a device. Where the driver lists the processes, what engines use is their sum; elsewhere the
 * engines are taken to use what is reserved for them, as far as that much is in use.
 */
export function memoryUse({
  used_bytes: used,
  booked_bytes: booked,
  total_bytes: total,
  processes,
}: Pick<Schema<'DeviceStatus'>, 'used_bytes' | 'booked_bytes' | 'total_bytes' | 'processes'>): MemoryUse {
  if (used === null) return { own: 0, reserved: booked, foreign: 0 }
  const ofEngines = processes?.filter(({ engine_id }) => engine_id !== null) ?? []
  const own =
    ofEngines.length > 0 ? ofEngines.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0) : Math.min(booked, used)
  const foreign = Math.max(0, Math.min(total, used) - own)
  return { own, reserved: Math.max(0, booked - own), foreign }
}
