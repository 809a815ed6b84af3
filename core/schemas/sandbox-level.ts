/**
 * How much of the machine an engine can access. `strict`: no network; only the system's programs and libraries, its
 * model and its own folders. `files`: the network, and all files but those of the server, of users and of the system's
 * configuration. `none`: everything that the user who runs infer can access.
 */
export const sandboxLevels = ['strict', 'files', 'none'] as const
export type SandboxLevel = (typeof sandboxLevels)[number]
