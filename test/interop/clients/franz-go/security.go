package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type security struct {
	TLS                                      bool
	Ca, Cert, Key, Mechanism, User, Password string
}

func (given security) options() (opts []kgo.Opt) {
	if given.TLS {
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		config.RootCAs.AppendCertsFromPEM(must(os.ReadFile(given.Ca)))
		if given.Cert != "" {
			config.Certificates = []tls.Certificate{must(tls.LoadX509KeyPair(given.Cert, given.Key))}
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	secret := scram.Auth{User: given.User, Pass: given.Password}
	switch given.Mechanism {
	case "PLAIN":
		opts = append(opts, kgo.SASL(plain.Auth{User: given.User, Pass: given.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		opts = append(opts, kgo.SASL(secret.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		opts = append(opts, kgo.SASL(secret.AsSha512Mechanism()))
	}
	return opts
}
