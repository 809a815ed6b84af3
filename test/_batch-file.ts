import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { filePathOf } from '../core/files/file-path.ts'
import { newId } from '../core/ids.ts'
export function putFile(dataDir: string, organizationId: string, text: string): string {
  const id = newId('file')
  const bytes = Buffer.byteLength(text)
  const path = filePathOf(join(dataDir, 'files'), { id, organizationId, contentType: 'application/jsonl' } as never)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
  const db = new Database(join(dataDir, 'infer.db'), { timeout: 5000 })
  db.prepare(
    "INSERT INTO files (id, organization_id, purpose, api_purpose, name, content_type, bytes, sha256, created_at) VALUES (?,?, 'upload','batch','in.jsonl','application/jsonl',?,?,?)",
  ).run(id, organizationId, bytes, randomUUID().replaceAll('-', '').repeat(2), Date.now())
  db.close()
  return id
}
