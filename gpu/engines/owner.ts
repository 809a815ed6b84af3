/** The header that names the organization of a request for an engine that saves conversations: 32 hexadecimal digits. */
export const ownerHeader = 'x-infer-owner'
