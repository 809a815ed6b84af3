/**
 * How much of the machine an engine can reach. `strict`: no network, and of the files only the system's programs and
 * libraries, its model and its own folders. `files`: the network, and files other than those of the server, of users and
 * of the system's configuration. `none`: whatever the user that runs infer can reach.
 */
export const sandboxLevels = ['strict', 'files', 'none'] as const
export type SandboxLevel = (typeof sandboxLevels)[number]
