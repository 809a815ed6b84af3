import { type Device, noReadings } from '../../../gpu/devices/device.ts'

/** A device with 16 GiB and no ids, but for what is given. */
export const deviceOf = (id: string, of: Partial<Device> = {}): Device => ({
  id,
  kind: 'gpu',
  name: id,
  totalBytes: 2 ** 34,
  usedBytes: null,
  ...noReadings,
  cudaId: null,
  uuid: null,
  cores: null,
  ...of,
})
