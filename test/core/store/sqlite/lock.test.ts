import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { heard, startChild } from '../_children.ts'
import { claimWaiting, newJob, newToken, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

test('a second server is refused at once, by name, and the first continues', async () => {
  await using opened = await openTestStore()
  const before = performance.now()
  await expect(openTestStore({ dataDir: opened.dataDir })).rejects.toMatchObject({
    exitCode: 64,
    message: expect.stringContaining(opened.dataDir),
  })
  expect(performance.now() - before).toBeLessThan(5_000)
  expect((await opened.store.jobs.submit(newJob())).job.status).toBe('pending')
})

test('a server in another process holds the directory until it ends, however it ends', async () => {
  using directory = temporaryDirectory()
  const child = startChild('serve', directory.path)
  await heard(child, 'ready')
  await expect(openTestStore({ dataDir: directory.path })).rejects.toMatchObject({ exitCode: 64 })
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  await using opened = await openTestStore({ dataDir: directory.path })
  expect(opened.store.recovery.requeued).toBe(0)
})

test('commands write beside a busy server, and none gets a locked database', async () => {
  await using opened = await openTestStore()
  const { store, dataDir } = opened
  const going = new AbortController()
  const submitters = Array.from({ length: 16 }, async () => {
    let submitted = 0
    for (; !going.signal.aborted; submitted++) await store.jobs.submit(newJob())
    return submitted
  })
  const commands = [1, 2].map(() => startChild('admin', dataDir, '100'))
  const ended = await Promise.all(commands.map(child => once(child, 'exit')))
  going.abort()
  const submitted = await Promise.all(submitters)
  expect(ended.map(([code]) => code as number)).toEqual([0, 0])
  expect(await store.tokens.list(organizationId, { limit: 1000 })).toHaveLength(200)
  expect(Math.min(...submitted)).toBeGreaterThan(0)
  expect((await store.jobs.counts()).pending).toBe(submitted.reduce((sum, one) => sum + one))
})

test('a token revoked by a command is refused by the running server at once', async () => {
  await using opened = await openTestStore()
  const token = newToken()
  await opened.store.tokens.create(token)
  const admin = await openAdminStore(opened.dataDir)
  await admin.tokens.revoke(organizationId, token.id, 1)
  expect(opened.store.tokens.verify(token.publicId)?.status).toBe('revoked')
  await admin.close()
})

test('a command releases no job that the server is running', async () => {
  await using opened = await openTestStore()
  const { job } = await opened.store.jobs.submit(newJob())
  await claimWaiting(opened.store, { limit: 1 })
  const admin = await openAdminStore(opened.dataDir)
  await admin.close()
  expect((await opened.store.jobs.find(organizationId, job.id))?.status).toBe('processing')
})

test('a data directory that others can write to is refused with the command that fixes it', async () => {
  using directory = temporaryDirectory()
  chmodSync(directory.path, 0o770)
  await expect(openTestStore({ dataDir: directory.path })).rejects.toMatchObject({
    exitCode: 64,
    message: expect.stringContaining(`chmod 700 ${directory.path}`),
  })
})

test('a data directory that cannot be created is an I/O failure', async () => {
  await expect(openTestStore({ dataDir: '/proc/infer' })).rejects.toMatchObject({ exitCode: 74 })
  await expect(openTestStore({ dataDir: '/dev/null/infer' })).rejects.toMatchObject({ exitCode: 74 })
})
