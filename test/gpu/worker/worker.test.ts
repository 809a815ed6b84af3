import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** The parts of the Python worker that need no library. */
const worker = join(import.meta.dirname, '..', '..', '..', 'gpu', 'worker')
const supported = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).status === 0

test
  .skipIf(!supported)
  .each(['server_requests', 'diffusion_arguments', 'text_pieces', 'text_requests', 'text_vectors', 'text_frames'])(
  '%s.py',
  name => {
    const { status, stderr } = spawnSync('python3', ['-m', 'unittest', name], {
      cwd: import.meta.dirname,
      env: { ...process.env, PYTHONPATH: worker, PYTHONDONTWRITEBYTECODE: '1' },
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/^Ran [1-9]\d* tests? in/m)
  },
)
