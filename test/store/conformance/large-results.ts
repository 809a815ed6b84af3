import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { type LargeResult, largeResultBytes } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { completed, newJob, organizationId } from './records.ts'

/** Results that are too large to be read at once. */
export function largeResultRules({ store }: Subject): void {
  /** JSON text of this many bytes, with characters of four bytes. */
  const textOf = (bytes: number): string => JSON.stringify('𝄞'.repeat((bytes - 2) / 4) + 'x'.repeat((bytes - 2) % 4))

  async function stored(result: string | Uint8Array): Promise<{ id: string; result: string | LargeResult | null }> {
    const { job } = await store.jobs.submit(newJob())
    const claim = await store.jobs.claim(organizationId, job.id, Date.now())
    await store.jobs.settle(claim!, { ...completed(), result })
    return (await store.jobs.find(organizationId, job.id))!
  }
  async function large(bytes = largeResultBytes + 1): Promise<{ id: string; text: string; result: LargeResult }> {
    const text = textOf(bytes)
    const { id, result } = await stored(text)
    return { id, text, result: result as LargeResult }
  }

  test('a result of 256,000 bytes is text, and a larger one is a handle, however it was given', async () => {
    for (const given of [textOf(largeResultBytes), Buffer.from(textOf(largeResultBytes))])
      expect((await stored(given)).result).toBe(textOf(largeResultBytes))
    const text = textOf(largeResultBytes + 1)
    for (const given of [text, Buffer.from(text)]) {
      const { result } = await stored(given)
      expect(result).toMatchObject({ bytes: largeResultBytes + 1 })
      expect(await (result as LargeResult).text()).toBe(text)
    }
  })

  test('a large result is read in parts, of any length, from any position', async () => {
    const { text, result } = await large()
    const bytes = Buffer.from(text)
    await result.check()
    await using open = await result.open()
    const part = async (position: number, length: number) => {
      const buffer = Buffer.alloc(length)
      const { bytesRead } = await open.read({ buffer, position })
      return buffer.subarray(0, bytesRead)
    }
    for (const [position, length] of [
      [0, 1],
      [100_000, 65_536],
      [result.bytes - 10, 100],
    ] as const)
      expect((await part(position, length)).equals(bytes.subarray(position, position + length))).toBe(true)
    expect(await part(result.bytes, 10)).toHaveLength(0)
  })

  test('a thread reads it from a file, which is always the same', async () => {
    const { text, result } = await large()
    await using first = await result.localFile()
    await using second = await result.localFile()
    expect(second.path).toBe(first.path)
    expect(await readFile(first.path, 'utf8')).toBe(text)
  })

  test('a job that is read has the handle of its large result, and one that is listed has none', async () => {
    const { id, text } = await large()
    const again = await store.jobs.find(organizationId, id)
    expect(await (again!.result as LargeResult).text()).toBe(text)
    const { jobs } = await store.jobs.list(organizationId, { limit: 1 })
    expect(jobs).toMatchObject([{ id, result: null }])
  })

  test('when its job is deleted it expires, and open readers read it to its end', async () => {
    const { id, text, result } = await large()
    await using open = await result.open()
    await store.jobs.remove(organizationId, id, Date.now())
    const codeOf = (read: Promise<unknown>) =>
      read.then(
        () => 'there',
        (thrown: { code: string }) => thrown.code,
      )
    await expect.poll(() => codeOf(result.check())).toBe('output_expired')
    expect(await codeOf(result.text())).toBe('output_expired')
    expect(await codeOf(result.open())).toBe('output_expired')
    const buffer = Buffer.alloc(result.bytes)
    expect((await open.read({ buffer, position: 0 })).bytesRead).toBe(result.bytes)
    expect(buffer.toString()).toBe(text)
  })
}
