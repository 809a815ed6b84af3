/**
 * The header of requests that an infer passes on to another one. They are passed on once only, so that they cannot go in
 * circles.
 */
export const relayedHeader = 'x-infer-relayed'
