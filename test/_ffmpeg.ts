import { spawnSync } from 'node:child_process'

/** Whether ffmpeg is installed: the fake engine makes its videos with it, and some conversions need it. */
export const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0
