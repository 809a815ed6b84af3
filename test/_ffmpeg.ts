import { spawnSync } from 'node:child_process'
import { test } from 'vitest'

/** Whether ffmpeg is installed: engines make videos with it, and some conversions need it. */
export const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0

/** A test that is skipped where ffmpeg is not installed. */
export const testWithFfmpeg = test.skipIf(!hasFfmpeg)
